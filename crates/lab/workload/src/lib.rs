//! What the lab loads: pages, origins, browser.
