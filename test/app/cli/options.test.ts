import { expect } from 'chai';
import { svc } from './command-line.ts';

describe('an option that says nothing where it stands', () => {
  const id = '01a1fc11-0505-734a-8920-9c4c55a40f65';
  for (const [words, says] of [
    [['audit', '--follow', '--since', '2026-11-20T00:00Z'], '--since goes without --follow'],
    [['audit', '--follow', '--limit', '5', '--all'], '--limit, --all goes without --follow'],
    [['runs', 'follow', id, '--state', 'failed'], '--task and --state are for following all runs'],
    [['runs', 'follow', id, '--task', id], '--task and --state are for following all runs'],
    [['tasks', 'preview', id, '--zone', 'Europe/Berlin'], "a task's own zone counts: --zone"],
    [['export', 'folder', '--of', 'runs'], '--of goes with --format'],
  ] as const) {
    it(`is refused: svc ${words.join(' ')}`, async () => {
      const { code, err, out } = await svc(words, { env: { SVC_URL: 'http://127.0.0.1:9' } });
      expect({ code, out }).to.deep.equal({ code: 2, out: '' });
      expect(err).to.include(says);
    });
  }
});
