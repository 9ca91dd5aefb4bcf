import { expect } from 'chai';
import { HttpError } from '../../../api/errors.ts';
import { ifMatchOf } from '../../../api/serving/if-match.ts';
import { useRunningApi } from '../../support/running-api.ts';
import { plainTask } from '../plain-task.ts';

const read = (header: string) => ifMatchOf({ headers: { 'if-match': header } });

describe('If-Match', () => {
  const tags: readonly (readonly [header: string, seen: unknown, sent: unknown])[] = [
    ['"3"', 3, 3],
    [' "0" ', 0, 0],
    ['3', 3, 3],
    ['W/"3"', 3, 3],
    ['"3-gzip"', 3, 3],
    ['W/"3-gzip"', 3, 3],
    ['"3--gzip"', 3, 3],
    ['"3;gzip"', 3, 3],
    ['"3-br"', 3, 3],
    ['"3-zstd"', 3, 3],
    ['"3-gzip-br"', 3, 3],
    ['"3-5f3a"', [], '"3-5f3a"'],
    ['"3-x"', [], '"3-x"'],
    ['"-gzip"', [], '"-gzip"'],
    ['"-1"', [], '"-1"'],
    ['"03"', [], '"03"'],
    ['"1e3"', [], '"1e3"'],
    ['""', [], '""'],
    ['"a,b"', [], '"a,b"'],
    ['"9999999999999999"', [], '"9999999999999999"'],
    ['"3", "4"', [3, 4], [3, 4]],
    ['"3","x" ,\tW/"4-gzip"', [3, 4], [3, '"x"', 4]],
    [',, "3" ,,"4",', [3, 4], [3, 4]],
    [', "3"', 3, 3],
    ['"a,", "b"', [], ['"a,"', '"b"']],
  ];
  for (const [header, seen, sent] of tags) {
    it(`${header} means ${JSON.stringify(seen)}`, () => {
      expect(read(header)).to.deep.equal({ seen, sent });
    });
  }

  it('means any existing resource if it is * or missing', () => {
    expect(read('*')).to.equal(undefined);
    expect(ifMatchOf({ headers: {} })).to.equal(undefined);
  });

  for (const header of ['', ' ', ',', 'x', '"3', '3"', 'w/"3"', '*, "3"', '"3" "4"', '"3";']) {
    it(`is rejected as ${JSON.stringify(header)}`, () => {
      expect(() => read(header))
        .to.throw(HttpError)
        .with.nested.property('details.field', 'If-Match');
    });
  }

  describe('of a request', () => {
    const api = useRunningApi();
    const put = async (id: string, ifMatch: string, title = 'x') =>
      api().admin.client.put(`/tasks/${id}`, { title }, { headers: { 'if-match': ifMatch } });

    it('accepts the revision of any of its tags', async () => {
      const made = await api().admin.client.post('/tasks', plainTask(api().admin.id));
      const id = made.textAt('id');
      for (const [header, status] of [
        ['"0-gzip"', 200],
        ['W/"1"', 200],
        ['"7", "2", "other"', 200],
        ['"7", "2", "other"', 412],
      ] as const) {
        expect((await put(id, header, `t${header}${status}`)).status, header).to.equal(status);
      }
      const seen = (await api().admin.client.get(`/tasks/${id}`)).header('ETag');
      expect(seen).to.equal('"3"');
    });

    it('appears in a refusal, with revisions as numbers', async () => {
      const made = await api().admin.client.post('/tasks', plainTask(api().admin.id));
      const id = made.textAt('id');
      for (const [header, expected] of [
        ['"7"', 7],
        ['"7-gzip"', 7],
        ['"other"', '"other"'],
        ['W/"x"', 'W/"x"'],
        ['"7", "8"', [7, 8]],
        ['"other", "8"', ['"other"', 8]],
      ] as const) {
        const refused = await put(id, header);
        expect(refused.status, header).to.equal(412);
        expect(refused.at('details'), header).to.deep.equal({ expected, actual: 0 });
      }
    });

    it('is stored with the refusal under an Idempotency-Key', async () => {
      const { client, id: owner } = api().admin;
      const id = (await client.post('/tasks', plainTask(owner))).textAt('id');
      const headers = { 'if-match': '"other"', 'idempotency-key': 'pausing' };
      const refused = await client.post(`/tasks/${id}/pause`, undefined, { headers });
      expect(refused.status, refused.text).to.equal(412);
      const again = await client.post(`/tasks/${id}/pause`, undefined, { headers });
      expect(again.status, again.text).to.equal(412);
      expect(again.header('Idempotent-Replayed')).to.equal('true');
      expect(again.at('details')).to.deep.equal({ expected: '"other"', actual: 0 });
    });
  });
});
