//! HTOTP: frames, field sections, scheduler and the session, as pure state machines.
