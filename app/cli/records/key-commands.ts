import type { ApiKey } from '../../../api/client/client.ts';
import type { Session } from '../calling/session.ts';
import { repeatable, text } from '../options.ts';
import type { CommandLine } from '../program.ts';
import { shortTime, timeOr } from '../terminal/units.ts';

/** `svc keys …` */
export function addKeyCommands(line: CommandLine): void {
  const group = line.group('keys', "create, list and revoke agents' API keys");
  line.add(group, 'create <agent> <name>', {
    description:
      'create an API key for an agent and show it once; without --scope it gets every scope it may have',
    options: {
      scope: repeatable('scope', 'a scope that the agent has (repeatable)'),
      expires: text('time', 'when it expires, such as 2027-01-31T12:00:00Z (default: never)'),
    },
    examples: [
      'keys create 01a1fc11-… deploy --scope tasks:write',
      'keys create 01a1fc11-… laptop --expires 2027-01-31',
    ],
    run: (session, { scope, expires }, [agent = '', name = '']) => {
      const body = {
        name,
        ...(scope === undefined ? {} : { scopes: [...scope] }),
        ...(expires === undefined ? {} : { expires_at: expires }),
      };
      return session.show(
        (api) => api.keys.create(agent, body),
        ({ id, key, scopes, expires_at }) =>
          session.fields([
            ['id', id],
            ['key', key],
            ['scopes', scopes.join(' ') || '(none)'],
            ['expires', timeOr(expires_at, 'never')],
          ]),
      );
    },
  });
  line.add(group, 'list <agent>', {
    description: "list an agent's API keys, newest first, without the keys themselves",
    examples: ['keys list 01a1fc11-…'],
    run: (session, _, [agent = '']) =>
      session.show(
        (api) => api.keys.list(agent),
        ({ items }) => keyTable(session, items),
      ),
  });
  line.add(group, 'revoke <agent> <key>', {
    description: 'revoke an API key; it stops working within a second',
    examples: ['keys revoke 01a1fc11-… 5b0f3c2e-…'],
    run: (session, _, [agent = '', key = '']) => session.done((api) => api.keys.revoke(agent, key)),
  });
}

function keyTable(session: Session, keys: readonly ApiKey[]): string {
  return session.table<ApiKey>(
    [
      { title: 'ID', cell: ({ id }) => id },
      { title: 'NAME', maxWidth: 30, cell: ({ name }) => name },
      { title: 'SCOPES', cell: ({ scopes }) => scopes.join(' ') },
      { title: 'CREATED', cell: ({ created_at }) => shortTime(created_at) },
      { title: 'EXPIRES', cell: ({ expires_at }) => timeOr(expires_at, 'never') },
      { title: 'LAST USED', cell: ({ last_used_at }) => timeOr(last_used_at, 'never') },
    ],
    keys,
    'no keys',
  );
}
