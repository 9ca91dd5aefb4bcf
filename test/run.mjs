// `node test/run.mjs [--long] [arguments of mocha]`: builds the service if the build is stale, and runs the tests on
// the build. The variables are set here, because the Windows shell has no `NAME=value command`.

import { buildIfStale } from '../app/build-if-stale.mjs';
import { filesInOrder } from './files-in-order.mjs';

buildIfStale();
process.env.SVC_TEST_BUILT = '1';
if (process.argv[2] === '--long') {
  process.env.SVC_TEST_LONG = '1';
  process.argv.splice(2, 1, '--no-parallel');
}
// Windows limits the length of a command line.
if (process.argv.length === 2 && process.platform !== 'win32') process.argv.push(...filesInOrder());
await import('../node_modules/mocha/bin/mocha.js');
