//! Zstandard (RFC 8878): frames one after the other, windows bounded.

use crate::stage::{SqueezeError, Stage, Stepped};
use zstd::zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, get_error_name};

const NAME: &str = "zstd";

pub(crate) struct Zstd {
    context: DCtx<'static>,
    /// Between frames, at least one having been read.
    complete: bool,
}

impl Zstd {
    /// Refuses frames with a window beyond 2^`window_log` bytes.
    pub(crate) fn new(window_log: u32) -> Self {
        let mut context = DCtx::create();
        // Fails only for values out of range; the default bound, 2^27, would stay.
        let bounded = context.set_parameter(DParameter::WindowLogMax(window_log));
        debug_assert!(bounded.is_ok());
        Zstd { context, complete: false }
    }

    /// The same for frames that refer to `base`, of which a copy is kept.
    pub(crate) fn against(base: &[u8], window_log: u32) -> Result<Self, SqueezeError> {
        let mut stage = Zstd::new(window_log);
        stage.context.load_dictionary(base).map_err(|_| SqueezeError::Codec(NAME))?;
        Ok(stage)
    }
}

impl Stage for Zstd {
    fn name(&self) -> &'static str {
        NAME
    }

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Stepped, SqueezeError> {
        if self.complete && input.is_empty() {
            return Ok(Stepped { read: 0, written: 0 });
        }
        let mut source = InBuffer::around(input);
        let mut target = OutBuffer::around(output);
        let left = self
            .context
            .decompress_stream(&mut target, &mut source)
            .map_err(|code| SqueezeError::invalid(NAME, get_error_name(code)))?;
        let stepped = Stepped { read: source.pos(), written: target.pos() };
        // Zero: a frame has ended and all of it is written. The context starts the next one by itself.
        if stepped.read > 0 || stepped.written > 0 {
            self.complete = left == 0;
        }
        Ok(stepped)
    }

    fn is_complete(&self) -> bool {
        self.complete
    }
}
