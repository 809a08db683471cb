//! Compare results: JSON, table, self-contained HTML.
