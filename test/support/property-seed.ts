import fc from 'fast-check';

// Properties are tested with the same values in each run, so that only a change of the code can
// change the result. The long run (`npm run test:long`) draws new ones. A counterexample it finds
// becomes one of the property's `examples`.
if (process.env['SVC_TEST_LONG'] !== '1') fc.configureGlobal({ seed: 20_261_126 });
