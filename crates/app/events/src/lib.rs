//! Each event declared once; counters derive from them.
