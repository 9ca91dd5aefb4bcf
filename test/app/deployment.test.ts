import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readConfiguration } from '../../app/configuration/configuration.ts';
import { settings } from '../../app/configuration/known-settings.ts';
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
  it('is given every room that is compiled', () => {
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

  it('starts what npm start starts', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: { start: string } };
    const command = /^CMD (\[.*\])$/m.exec(read('Dockerfile'))?.[1] ?? '[]';
    const words = JSON.parse(command) as readonly string[];
    expect(scripts.start).to.match(new RegExp(`exec ${words.join(' ')}$`));
  });
});
