//! The managed engine, really brought and really run.
