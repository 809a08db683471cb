//! What tests share: origins with bad manners, virtual time, corpora.
