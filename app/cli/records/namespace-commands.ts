import type { Namespace } from '../../../api/schemas/namespace-schemas.ts';
import { usageError } from '../calling/command-errors.ts';
import type { RecordColumn, Session } from '../calling/session.ts';
import { text } from '../options.ts';
import type { CommandLine } from '../program.ts';
import { shortTime } from '../terminal/units.ts';

const fields = { description: text('text', 'what it is for; "" for none') };

/** `svc namespaces …` */
export function addNamespaceCommands(line: CommandLine): void {
  const group = line.group('namespaces', 'list, create, change and remove namespaces');
  line.add(group, 'list', {
    description: 'list the namespaces that you administer',
    examples: ['namespaces list'],
    run: async (session) => {
      const items: Namespace[] = [];
      for (let cursor: string | undefined; ;) {
        const page = await session.client.call((api) =>
          api.namespaces.list({ limit: 200, cursor }),
        );
        items.push(...page.items);
        if (page.next_cursor === null) break;
        cursor = page.next_cursor;
      }
      session.answer({ items }, () =>
        session.table<Namespace>(
          [
            { title: 'NAME', cell: ({ name }) => name },
            { title: 'DESCRIPTION', maxWidth: 60, cell: ({ description }) => description ?? '' },
            { title: 'CREATED', cell: ({ created_at: at }) => (at === null ? '' : shortTime(at)) },
          ],
          items,
          'no namespaces',
        ),
      );
    },
  });
  line.add(group, 'show <name>', {
    description: 'show a namespace',
    examples: ['namespaces show payments'],
    run: (session, _options, [name = '']) =>
      session.show(
        (api) => api.namespaces.get(name),
        (namespace) => showNamespace(session, namespace),
      ),
  });
  line.add(group, 'create <name>', {
    description: 'create a namespace',
    options: fields,
    examples: ['namespaces create payments --description "The team of payments"'],
    run: (session, { description = '' }, [name = '']) =>
      session.show(
        (api) => api.namespaces.create({ name, description: description || null }),
        (namespace) => showNamespace(session, namespace),
      ),
  });
  line.add(group, 'update <name>', {
    description: 'change the description of a namespace',
    options: fields,
    examples: ['namespaces update payments --description "Payments and refunds"'],
    run: async (session, { description }, [name = '']) => {
      if (description === undefined) throw usageError('give a --description');
      await session.show(
        (api) => api.namespaces.update(name, { description: description || null }),
        (namespace) => showNamespace(session, namespace),
      );
    },
  });
  line.add(group, 'delete <name>', {
    description: 'remove a namespace without agents; its records stay',
    examples: ['namespaces delete payments'],
    run: (session, _options, [name = '']) => session.done((api) => api.namespaces.delete(name)),
  });
}

/** The column of a list with records of several namespaces; none where all are in `default`. */
export function namespaceColumn<T extends { readonly namespace?: string }>(
  records: readonly T[],
): readonly RecordColumn<T>[] {
  if (records.every(({ namespace }) => namespace === undefined)) return [];
  return [{ title: 'NAMESPACE', cell: ({ namespace }) => namespace ?? 'default' }];
}

function showNamespace(session: Session, namespace: Namespace): string {
  const { name, description, created_at, updated_at } = namespace;
  return session.fields([
    ['name', name],
    ['description', description],
    ['created', created_at === null ? null : shortTime(created_at)],
    ['updated', updated_at === null ? null : shortTime(updated_at)],
  ]);
}
