// `node test/run.mjs [--long] [arguments of mocha]`: builds the service where that is stale, then runs the tests
// on the build. The variables are set here, as the Windows shell has no `NAME=value command`.

import { buildIfStale } from '../app/build-if-stale.mjs';

buildIfStale();
process.env.SVC_TEST_BUILT = '1';
if (process.argv[2] === '--long') {
  process.env.SVC_TEST_LONG = '1';
  process.argv.splice(2, 1, '--no-parallel');
}
await import('../node_modules/mocha/bin/mocha.js');
