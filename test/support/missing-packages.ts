import { missingPackages } from './required-program.ts';

// Prints the Debian packages that `.ci/run` installs, one a line.
for (const name of missingPackages()) console.log(name);
