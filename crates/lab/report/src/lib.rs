//! What a comparison found, and how it is shown: JSON for programs, a table for terminals, one HTML file for people. Pure:
//! results come in, text goes out; measures nothing and writes no file.

mod accounts;
mod html;
mod result;
mod spread;
mod study;
mod table;
mod transport;
mod waterfall;

pub use accounts::{Accounts, Crossed};
pub use html::html;
pub use result::{
    Calibration, Comparison, Leg, Limit, Link, PageResult, SCHEMA, Servers, VariantResult, Ways, ratio,
    saving, saving_at_limit,
};
pub use spread::Spread;
pub use study::{
    Dynamics, Line, Plot, Point, STUDY_SCHEMA, Series, Still, Study, StudyCell, StudyClaim, StudyLoad,
    StudyPage, StudyShift, StudySummary, study_csv, study_html,
};
pub use table::table;
pub use transport::{
    Cell, Condition, LinkResult, Named, TRANSPORT_SCHEMA, Transports, WorkloadResult, transport_html,
    transport_table,
};
pub use waterfall::{Bar, Waterfall};
