import { badInput, type ToolAccess } from '../contract.ts';
import type { Extension } from './extension.ts';
import type { ToolPort } from './ports.ts';

/** An extension's part of the tool registry: its tools have its id before their names. */
export class ExtensionTools {
  readonly access: ToolAccess;
  readonly #tools: ToolPort;
  readonly #own = new Set<string>();

  /** @param enter calls into the extension's code */
  constructor(extension: Extension, tools: ToolPort, enter: <T>(call: () => T) => T) {
    const { id } = extension;
    this.#tools = tools;
    this.access = Object.freeze({
      registerTool: (name, func, schema) => {
        if (!/^[A-Za-z0-9_.-]{1,80}$/.test(name)) throw badInput('name', 'is no name of a tool');
        if (typeof func !== 'function') throw badInput('func', 'must be a function');
        const full = `${id}.${name}`;
        tools.register(full, describe(name, schema), schema, (args, call) =>
          enter(() => func(args, call)),
        );
        this.#own.add(full);
      },
      listTools: () => tools.list(id),
      getTool: (name) => tools.get(name, id),
    } satisfies ToolAccess);
  }

  /** Takes its tools away; calls under way go on. */
  close(): void {
    for (const name of this.#own) this.#tools.unregister(name);
    this.#own.clear();
  }
}

/** The schema's own description, else words made of the name: `sendMail` → `Send mail`. */
function describe(name: string, schema: object): string {
  const said = (schema as { readonly description?: unknown } | null)?.description;
  if (typeof said === 'string' && said !== '') return said;
  const words = name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll(/[_.-]+/g, ' ')
    .trim()
    .toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}
