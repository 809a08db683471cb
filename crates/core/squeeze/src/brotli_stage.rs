//! Brotli (RFC 7932), without the large-window extension, which no browser accepts.

use crate::stage::{SqueezeError, Stage, Stepped};
use brotli::enc::StandardAlloc;
use brotli::{BrotliDecompressStream, BrotliResult, BrotliState};

const NAME: &str = "br";

type State = BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>;

pub(crate) struct Brotli {
    state: Box<State>,
    complete: bool,
}

impl Brotli {
    pub(crate) fn new() -> Self {
        let alloc = StandardAlloc::default;
        Brotli { state: Box::new(State::new_strict(alloc(), alloc(), alloc())), complete: false }
    }

    /// The same for streams that refer to a dictionary, of which a copy is kept (RFC 9842 §4).
    pub(crate) fn against(dictionary: &[u8]) -> Self {
        let alloc = StandardAlloc::default;
        let copy = Vec::from(dictionary).into();
        let mut state = State::new_with_custom_dictionary(alloc(), alloc(), alloc(), copy);
        state.large_window = false;
        Brotli { state: Box::new(state), complete: false }
    }
}

impl Stage for Brotli {
    fn name(&self) -> &'static str {
        NAME
    }

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Stepped, SqueezeError> {
        if self.complete {
            return Ok(Stepped { read: input.len(), written: 0 });
        }
        let (mut available_in, mut read, mut available_out, mut written, mut total) =
            (input.len(), 0, output.len(), 0, 0);
        let result = BrotliDecompressStream(
            &mut available_in,
            &mut read,
            input,
            &mut available_out,
            &mut written,
            output,
            &mut total,
            &mut self.state,
        );
        match result {
            BrotliResult::ResultFailure => Err(SqueezeError::invalid(NAME, "corrupt stream")),
            BrotliResult::ResultSuccess => {
                self.complete = true;
                Ok(Stepped { read, written })
            }
            BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => Ok(Stepped { read, written }),
        }
    }

    fn is_complete(&self) -> bool {
        self.complete
    }

    fn may_break_off(&self) -> bool {
        true
    }

    fn window(&self) -> usize {
        1_usize.checked_shl(self.state.window_bits).filter(|_| self.state.window_bits > 0).unwrap_or(0)
    }
}
