import { expect } from 'chai';
import { generateX25519Identity, identityToRecipient } from 'age-encryption';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { Ledger } from '../../process/ledger.ts';
import { EventStoreDbServer } from '../../support/eventstoredb-server/server.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { svc, type Called } from '../cli/command-line.ts';
import { addRuns, addTask, onLog } from './small-log.ts';

const AT = Date.parse('2026-05-01T10:00:00Z');
const RUNS = 20;
/** A task and its runs of three events each. */
const EVENTS = 1 + RUNS * 3;

describe('an encrypted backup', function () {
  this.timeout(120_000);
  const directory = useTemporaryDirectory();
  const path = (name: string): string => join(directory(), name);
  let server: EventStoreDbServer | undefined;
  let recipient = '';

  beforeEach(async () => {
    recipient = await newRecipient('key.txt');
    await onLog(path('here'), async (store) => {
      await addRuns(store, await addTask(store, AT), AT, RUNS);
    });
    writeFileSync(path('here/jwt-secret.key'), 'the key that signs all the tokens');
  });

  afterEach(() => {
    server?.stop();
    server = undefined;
  });

  /** Writes an identity as age-keygen does. @returns its recipient */
  async function newRecipient(file: string): Promise<string> {
    const identity = await generateX25519Identity();
    const own = await identityToRecipient(identity);
    writeFileSync(path(file), `# created: now\n# public key: ${own}\n${identity}\n`);
    return own;
  }

  const on = (place: string, ...words: string[]): Promise<Called> =>
    svc(words, { env: { SVC_DATA_DIR: path(place) } });

  const backUp = (name = 'backup', ...recipients: string[]): Promise<Called> =>
    on('here', 'backup', path(name), '--recipient', recipient, ...recipients);

  const restore = (key = 'key.txt', place = 'there'): Promise<Called> =>
    on(place, 'restore', path('backup'), '--identity', path(key));

  async function done(called: Promise<Called>): Promise<Called> {
    const ended = await called;
    expect(ended.code, ended.err).to.equal(0);
    return ended;
  }

  it('contains nothing unencrypted, and restores the same log', async () => {
    const { out } = await done(backUp());
    expect(out).to.match(/with 61 events, .*, and 1 key files, encrypted for 1 recipient\n$/);
    const names = ['events.sqlite.age', 'jwt-secret.key.age', 'manifest.json.age'];
    expect(readdirSync(path('backup'))).to.have.members(names);
    for (const name of names) {
      const bytes = readFileSync(path(`backup/${name}`));
      expect(bytes.toString('latin1')).to.match(/^age-encryption\.org\/v1\n-> X25519 /);
      for (const clear of ['SQLite format', 'RunRequested', 'the key that signs', '"format"']) {
        expect(bytes.includes(clear), `${clear} in ${name}`).to.equal(false);
      }
    }
    expect(readdirSync(path('here')).filter((name) => name.startsWith('.'))).to.deep.equal([]);

    await done(restore());
    expect(readdirSync(path('there'))).to.have.members(['events.sqlite', 'jwt-secret.key']);
    const { events } = Ledger.read(path('there'));
    expect(events).to.have.lengthOf(EVENTS + 1);
    expect(events.at(-1)?.type).to.equal('OperationsHeld');
    expect(readFileSync(path('there/jwt-secret.key'), 'utf8')).to.match(/^the key that signs/);
  });

  it('can be decrypted by each of several recipients', async () => {
    await done(backUp('backup', '--recipient', await newRecipient('other.txt')));
    await done(restore('key.txt', 'first'));
    await done(restore('other.txt', 'second'));
  });

  it('contains the events of a server', async () => {
    server = await EventStoreDbServer.start();
    const env = { SVC_DATA_DIR: path('beside'), SVC_EVENT_STORE_URL: server.url };
    await done(on('here', 'export', path('out')));
    await done(svc(['import', path('out')], { env }));
    const words = ['backup', path('backup'), '--recipient', recipient];
    await done(svc(words, { env }));
    expect(readdirSync(path('backup'))).to.include.members([
      'events.ndjson.age',
      'truncations.ndjson.age',
    ]);
    await done(restore());
    expect(Ledger.read(path('there')).events).to.have.lengthOf(EVENTS + 1);
  });

  /** Expects a failure that restores nothing. */
  async function expectNothing(called: Promise<Called>, code: number, says: RegExp): Promise<void> {
    const ended = await called;
    expect(ended.err).to.match(says);
    expect(ended.code).to.equal(code);
    expect(existsSync(path('there')), 'there is a data directory').to.equal(false);
  }

  it('is not restored with the key of somebody else', async () => {
    await done(backUp());
    await newRecipient('other.txt');
    const says =
      /manifest\.json\.age is encrypted for others: no key in .*other\.txt decrypts it\n$/;
    await expectNothing(restore('other.txt'), 1, says);
  });

  for (const file of ['events.sqlite', 'jwt-secret.key', 'manifest.json']) {
    const damaged = new RegExp(
      `backup/${file.replace('.', '\\.')}\\.age is damaged: it is incomplete or was altered`,
    );

    it(`is not restored if ${file} was cut, altered or extended`, async () => {
      await done(backUp());
      const encrypted = path(`backup/${file}.age`);
      const whole = readFileSync(encrypted);
      for (const length of [whole.length - 1, whole.length >> 1, 40, 0]) {
        truncateSync(encrypted, length);
        await expectNothing(restore(), 1, damaged);
        writeFileSync(encrypted, whole);
      }
      for (const at of [30, 190, whole.length - 20]) {
        const altered = Buffer.from(whole);
        altered.writeUInt8((whole[at] ?? 0) ^ 1, at);
        writeFileSync(encrypted, altered);
        const ended = await restore();
        expect(ended.code, `byte ${at}: ${ended.err}`).to.equal(1);
        expect(existsSync(path('there'))).to.equal(false);
      }
      writeFileSync(encrypted, Buffer.concat([whole, Buffer.from('x')]));
      await expectNothing(restore(), 1, damaged);
    });
  }

  it('is not restored if a file is missing, or from another backup for the same recipient', async () => {
    await done(backUp());
    await onLog(path('here'), (store) => addTask(store, AT + 1));
    await done(backUp('later'));
    copyFileSync(path('later/events.sqlite.age'), path('backup/events.sqlite.age'));
    await expectNothing(restore(), 1, /events\.sqlite is damaged: it has /);
    rmSync(path('backup/events.sqlite.age'));
    await expectNothing(restore(), 1, /backup is incomplete: .*events\.sqlite\.age is missing/);
  });

  it('is not restored into a folder with other content', async () => {
    await done(backUp());
    mkdirSync(path('there'));
    writeFileSync(path('there/notes.txt'), 'keep');
    const { code, err } = await restore();
    expect({ code, err }).to.deep.include({ code: 5 });
    expect(err).to.match(/is not empty \(notes\.txt\)/);
    expect(readdirSync(path('there'))).to.deep.equal(['notes.txt']);
  });

  it('needs its key, and an unencrypted backup rejects one', async () => {
    await done(backUp());
    const without = on('there', 'restore', path('backup'));
    await expectNothing(without, 2, /is encrypted: restore it with svc restore --identity <file>/);
    rmSync(path('backup'), { recursive: true });
    await done(on('here', 'backup', path('backup')));
    await expectNothing(restore(), 2, /is not encrypted; restore it without --identity/);
  });

  it('rejects invalid keys, without showing secret ones', async () => {
    const { code, err } = await on('here', 'backup', path('backup'), '--recipient', 'ssh-rsa AAAA');
    expect(code).to.equal(2);
    expect(err).to.match(/^svc: --recipient is "ssh-rsa AAAA"; it must be a public key of age/m);
    expect(existsSync(path('backup'))).to.equal(false);

    await done(backUp());
    await expectNothing(restore('none.txt'), 2, /--identity names .*none\.txt.*cannot be read/);
    writeFileSync(path('key.txt'), '# only a comment\n');
    await expectNothing(restore(), 2, /has no identity; it must have lines such as AGE-SECRET/);
    writeFileSync(path('key.txt'), 'AGE-SECRET-KEY-1HUSH\n');
    const shown = await restore();
    expect(shown.code).to.equal(2);
    expect(shown.err).to.include(' is not an identity').and.to.not.include('1HUSH');
  });

  it('is not made of a folder without a store, and creates none', async () => {
    const words = ['backup', path('backup'), '--recipient', recipient];
    const { code, err } = await on('mistyped', ...words);
    expect({ code, err }).to.deep.include({ code: 2 });
    expect(err).to.include('there is no store in');
    expect(existsSync(path('mistyped'))).to.equal(false);
  });
});
