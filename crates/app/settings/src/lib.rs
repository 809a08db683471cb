//! One definition per setting: default, unit, range and doc.
