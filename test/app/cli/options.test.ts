import { expect } from 'chai';
import { svc } from './command-line.ts';

describe('an option without effect', () => {
  const id = '01a1fc11-0505-734a-8920-9c4c55a40f65';
  for (const [words, says] of [
    [['audit', '--follow', '--since', '2026-11-20T00:00Z'], '--since cannot be used with --follow'],
    [['audit', '--follow', '--limit', '5', '--all'], '--limit, --all cannot be used with --follow'],
    [
      ['runs', 'follow', id, '--state', 'failed'],
      '--task and --state cannot be used with a run id',
    ],
    [['runs', 'follow', id, '--task', id], '--task and --state cannot be used with a run id'],
    [['tasks', 'preview', id, '--zone', 'Europe/Berlin'], '--zone cannot be used with'],
    [['export', 'folder', '--of', 'runs'], '--of can only be used with --format'],
  ] as const) {
    it(`is rejected: svc ${words.join(' ')}`, async () => {
      const { code, err, out } = await svc(words, { env: { SVC_URL: 'http://127.0.0.1:9' } });
      expect({ code, out }).to.deep.equal({ code: 2, out: '' });
      expect(err).to.include(says);
    });
  }
});
