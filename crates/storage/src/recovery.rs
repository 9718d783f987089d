//! Restart: double-write repair, redo. Undo of losers is the engine's, with `undo`.
