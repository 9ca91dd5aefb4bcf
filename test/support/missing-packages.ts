import { missingPackages } from './required-program.ts';

// For `.ci/run`: the Debian packages to install, one a line.
for (const name of missingPackages()) console.log(name);
