//! RFC 9111 verdicts: may it be stored, is it fresh, how to revalidate.
