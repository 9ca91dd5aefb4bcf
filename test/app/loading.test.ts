import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { projectRoot } from '../support/project-root.ts';

/** What a module loads with itself; not what it only takes types from, nor what it imports later. */
const loaded = /^(?:import|export)\s(?!type\b)(?:[^;'"]*?\sfrom\s)?'([^']+)';/gm;

/** All that is loaded with a module: files of the project, and names of packages. */
function loadedWith(entry: string): ReadonlySet<string> {
  const all = new Set([entry]);
  for (const file of all) {
    if (!file.endsWith('.ts')) continue;
    for (const [, module = ''] of readFileSync(join(projectRoot, file), 'utf8').matchAll(loaded)) {
      all.add(
        module.startsWith('.')
          ? relative(projectRoot, join(projectRoot, dirname(file), module))
          : module,
      );
    }
  }
  return all;
}

describe('svc, as it starts', () => {
  it('loads nothing that only some of its commands need: no store, no schema, no server', () => {
    const all = [...loadedWith('app/cli.ts')];
    expect(all).to.include.members(['app/cli/store/archive-commands.ts', 'commander']);
    const packages = all.filter((name) => !name.endsWith('.ts') && !name.startsWith('node:'));
    expect(packages.sort()).to.deep.equal(['commander', 'yaml']);
    // What lies beside the adapters of `stores/` knows the file system alone.
    const adapters = /^(stores\/.*\/|projections\/|scheduler\/)/;
    expect(all.filter((name) => adapters.test(name))).to.deep.equal([]);
  });
});

describe('the service, as it starts', () => {
  it('looks at the limit of open files before it loads what takes many', () => {
    const all = [...loadedWith('app/main.ts')];
    const starting = ['npm-shell', 'open-files', 'process-arguments'];
    const files = starting.map((name) => `app/starting/${name}.ts`);
    expect(all).to.have.members(['app/main.ts', ...files, 'node:fs']);
  });

  it('loads no driver of stores that it may not have, and no traces', () => {
    const all = [...loadedWith('app/service-process.ts')];
    expect(all).to.include.members(['scheduler/tools/http-request.ts', 'express']);
    for (const later of ['mongodb', '@eventstore/db-client', '@opentelemetry/sdk-trace']) {
      expect(all).not.to.include(later);
    }
  });
});
