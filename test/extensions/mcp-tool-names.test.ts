import { expect } from 'chai';
import fc from 'fast-check';
import { EXPOSED_NAME, exposedNames } from '../../extensions/mcp_http/tool-names.ts';

describe('the naming of tools for clients', () => {
  const named = (own: readonly string[], registered: readonly string[]) =>
    Object.fromEntries(exposedNames(own, registered));

  it('keeps a name that clients accept, and replaces each character that they refuse by _', () => {
    expect(named([], ['echo', 'http.request', 'mail/send it'])).to.deep.equal({
      echo: 'echo',
      http_request: 'http.request',
      mail_send_it: 'mail/send it',
    });
  });

  it('adds a number to a name that is already used', () => {
    expect(named(['get_task'], ['a.b', 'a_b', 'a:b', 'get.task', 'get_task'])).to.deep.equal({
      a_b: 'a_b',
      a_b_2: 'a.b',
      a_b_3: 'a:b',
      get_task_2: 'get.task',
      get_task_3: 'get_task',
    });
  });

  it('cuts a long name to leave room for its number', () => {
    const long = `x.${'y'.repeat(100)}`;
    const names = Object.keys(named([], [long, `${long}z`]));
    expect(names.map((name) => name.length)).to.deep.equal([64, 64]);
    expect(names[1]).to.match(/^x_y+_2$/);
  });

  it('gives every tool a unique name, whatever its own name is', () => {
    const names = fc.uniqueArray(fc.string({ unit: fc.constantFrom('a', '.', '_', '2', 'é') }));
    fc.assert(
      fc.property(names, names, (own, registered) => {
        const exposed = exposedNames(own, registered);
        expect([...exposed.values()]).to.have.members(registered);
        for (const name of exposed.keys()) {
          expect(name).to.match(EXPOSED_NAME);
          expect(own).not.to.include(name);
        }
      }),
    );
  });
});
