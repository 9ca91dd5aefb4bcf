import { expect } from 'chai';
import { parseAllDocuments } from 'yaml';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readConfiguration } from '../../app/configuration/configuration.ts';
import { settings } from '../../app/configuration/known-settings.ts';
import { secretFileSettings } from '../../app/configuration/secret-files.ts';
import { unlistedEndpoints } from '../../api/openapi/unlisted-endpoints.ts';
import { projectRoot } from '../support/project-root.ts';

function read(file: string): string {
  return readFileSync(join(projectRoot, file), 'utf8');
}

describe('the Compose file', () => {
  const text = read('docker-compose.yml');

  it('sets only variables of the service that the configuration knows', () => {
    const used = new Set(text.match(/\bSVC_[A-Z_]+/g));
    expect(used.size).to.be.greaterThan(3);
    const known: readonly string[] = settings;
    expect([...used].filter((name) => !known.includes(name))).to.deep.equal([]);
  });

  it('gives every role to some process', () => {
    const given = [...text.matchAll(/SVC_ROLES: ([a-z,]+)/g)].flatMap(([, list]) =>
      list?.split(','),
    );
    expect(given).to.include.members([...readConfiguration({}).roles]);
  });
});

describe('the image', () => {
  it('contains every compiled folder', () => {
    const { include } = JSON.parse(read('tsconfig.build.json')) as { include: readonly string[] };
    const given = read('.dockerignore').split('\n');
    expect(given).to.include.members(include.map((room) => `!${room}`));
  });

  it('sets only variables of the service that the configuration knows', () => {
    const known: readonly string[] = settings;
    const used = read('Dockerfile').match(/\bSVC_[A-Z_]+/g) ?? [];
    expect(used).to.not.have.lengthOf(0);
    expect(used.filter((name) => !known.includes(name))).to.deep.equal([]);
  });

  it('runs on one version of Node, which package.json and the README support', () => {
    const { engines } = JSON.parse(read('package.json')) as { engines: { node: string } };
    const major = /^ARG NODE_IMAGE=node:(\d+)-/m.exec(read('Dockerfile'))?.[1] ?? 'none';
    const images = Array.from(read('Dockerfile').matchAll(/^FROM (\S+)/gm), ([, image]) => image);
    expect(new Set(images)).to.deep.equal(new Set(['${NODE_IMAGE}']));
    expect(engines.node).to.include(`=${major}.0.0`);
    expect(read('README.md')).to.match(
      new RegExp(`^You need npm and Node 20 .*\\b${major}\\b`, 'm'),
    );
  });

  it('starts what npm start starts', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: { start: string } };
    const command = /^CMD (\[.*\])$/m.exec(read('Dockerfile'))?.[1] ?? '[]';
    const words = JSON.parse(command) as string[];
    const [entry = ''] = words.splice(-1);
    expect(entry).to.equal('dist/app/main.js');
    expect(scripts.start).to.equal([...words, 'app/launch.mjs', 'main'].join(' '));
    const { bin } = JSON.parse(read('package.json')) as { bin: Record<string, string> };
    expect(bin['task-scheduling-service']).to.equal(entry);
  });
});

/** The parts of a package.json script that the Windows shell (`cmd.exe`) would misinterpret. */
const foreignToWindows: readonly (readonly [what: string, pattern: RegExp])[] = [
  ['exec', /\bexec\b/],
  ['a variable set for a command', /(^|&&\s*)[A-Za-z_]\w*=/],
  [
    'a program of Unix',
    /(^|&&\s*)(rm|cp|mv|mkdir|cat|env|sh|bash|chmod|touch|export|test|sleep)\b/,
  ],
  ['single quotes', /'/],
  ['a substitution of a variable or a command', /[$`]/],
  ['a separator other than &&', /;|\|\||[^&]&[^&]/],
  ['a command that is a path', /(^|&&\s*)\.\.?\//],
];

function foreignIn(script: string): readonly string[] {
  return foreignToWindows.filter(([, pattern]) => pattern.test(script)).map(([what]) => what);
}

describe('the scripts of package.json', () => {
  it('run in the Windows shell as in any other', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const faults = Object.entries(scripts).flatMap(([name, script]) =>
      foreignIn(script).map((what) => `${name}: ${what}`),
    );
    expect(faults).to.deep.equal([]);
  });

  it('are reported if they would not', () => {
    const foreign = [
      'node a.mjs && exec node b.js',
      'node a.mjs && A=1 mocha',
      'rm -rf coverage && tsc',
      "node -e 'a()'",
      'node $FILE',
      'node a; node b',
      './a.mjs',
    ];
    expect(foreign.filter((script) => foreignIn(script).length === 0)).to.deep.equal([]);
  });
});

interface Workload {
  readonly kind: string;
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly terminationGracePeriodSeconds: number;
        readonly securityContext: { readonly runAsNonRoot: boolean };
        readonly volumes: readonly { readonly name: string }[];
        readonly containers: readonly Container[];
      };
    };
    readonly volumeClaimTemplates?: readonly { readonly metadata: { readonly name: string } }[];
  };
}

interface Container {
  readonly env: readonly { readonly name: string; readonly value?: string }[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly securityContext: { readonly readOnlyRootFilesystem: boolean };
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
  readonly [probe: `${string}Probe`]: {
    readonly httpGet: { readonly path: string; readonly port: string };
  };
}

describe('the manifests for Kubernetes', () => {
  const workloads = ['single', 'distributed'].flatMap((mode) =>
    parseAllDocuments(read(`deploy/kubernetes/${mode}.yaml`))
      .map((document) => document.toJSON() as Workload)
      .filter(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet')
      .map(({ spec }) => ({
        mode,
        pod: spec.template.spec,
        claims: spec.volumeClaimTemplates ?? [],
      })),
  );
  const containers = workloads.flatMap(({ pod }) => pod.containers);

  it('run everything in one pod, or a deployment for each role', () => {
    const roles = containers.map(({ env }) => env.find(({ name }) => name === 'SVC_ROLES')?.value);
    expect(roles).to.have.members([undefined, ...readConfiguration({}).roles]);
  });

  it('set only variables that the service knows', () => {
    const known: readonly string[] = [...settings, ...secretFileSettings];
    const used = containers.flatMap(({ env }) => env.map(({ name }) => name));
    expect(used.filter((name) => !known.includes(name))).to.deep.equal([]);
  });

  it('probe paths that need no token, on the port that the image listens on', () => {
    const open = unlistedEndpoints.flatMap(({ paths }) => paths);
    const port = /SVC_PORT=(\d+)/.exec(read('Dockerfile'))?.[1];
    for (const container of containers) {
      for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe'] as const) {
        const { path, port: name } = container[probe]?.httpGet ?? { path: `no ${probe}`, port: '' };
        expect(open).to.include(path);
        const target = container.ports.find((each) => each.name === name)?.containerPort;
        expect(String(target)).to.equal(port);
      }
    }
  });

  it('give running work its full drain time, and no writable storage but their volumes', () => {
    for (const { pod, claims } of workloads) {
      expect(pod.terminationGracePeriodSeconds).to.be.greaterThan(25);
      expect(pod.securityContext.runAsNonRoot).to.equal(true);
      const volumes = [...pod.volumes, ...claims.map(({ metadata }) => metadata)];
      for (const { securityContext, volumeMounts } of pod.containers) {
        expect(securityContext.readOnlyRootFilesystem).to.equal(true);
        const paths = volumeMounts.map(({ mountPath }) => mountPath);
        expect(paths).to.include.members(['/data', '/tmp']);
        const names = volumes.map(({ name }) => name);
        expect(names).to.include.members(volumeMounts.map(({ name }) => name));
      }
    }
  });
});

describe('the systemd unit', () => {
  const text = read('deploy/systemd/task-scheduling-service.service');

  it('sets only variables that the service knows', () => {
    const known: readonly string[] = [...settings, ...secretFileSettings, 'NODE_ENV'];
    const used = [...text.matchAll(/^Environment=([A-Z_]+)=/gm)].map(([, name]) => name ?? '');
    expect(used).to.not.have.lengthOf(0);
    expect(used.filter((name) => !known.includes(name))).to.deep.equal([]);
  });

  it('passes each credential that a setting names', () => {
    const loaded = [...text.matchAll(/^LoadCredential=([\w-]+):/gm)].map(([, name]) => name);
    const named = [...text.matchAll(/^Environment=\w+_FILE=%d\/(.+)$/gm)].map(([, name]) => name);
    expect(named).to.not.have.lengthOf(0);
    expect(loaded).to.have.members(named);
  });

  it('runs the command that the package installs', () => {
    const { bin } = JSON.parse(read('package.json')) as { bin: Record<string, string> };
    const command = /^ExecStart=\/usr\/bin\/env (\S+)$/m.exec(text)?.[1] ?? '';
    expect(Object.keys(bin)).to.include(command);
  });
});
