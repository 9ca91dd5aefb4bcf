import type { Request } from 'express';
import { badInput, type ToolAccess, type ToolView } from '../../contract.ts';
import { beginServing, checkActing, endServing } from './acting.ts';
import { needed } from '../context.ts';
import type { Extension } from '../extension.ts';
import type { AgentPort, LentTool, RequestOrigin, ToolPort } from '../ports.ts';

/** An extension's part of the tool registry: its tools have its id before their names. */
export class ExtensionTools {
  readonly access: ToolAccess;
  readonly #tools: ToolPort;
  readonly #own = new Set<string>();

  /**
   * @param enter calls into the extension's code
   * @param originOf of a request that was led to the extension
   */
  constructor(
    extension: Extension,
    { tools, agents }: { readonly tools: ToolPort; readonly agents: AgentPort },
    enter: <T>(call: () => T) => T,
    originOf: (request: Request) => RequestOrigin | undefined,
  ) {
    const { id } = extension;
    const lent = (view: LentTool): ToolView =>
      Object.freeze({
        ...view,
        async call(args, { onBehalfOf, ...options }) {
          needed(extension, 'TOOLS');
          await checkActing(extension, options.actAs, agents);
          const origin = onBehalfOf === undefined ? undefined : originOf(onBehalfOf);
          return view.call(args, { ...options, origin });
        },
      } satisfies ToolView);
    this.#tools = tools;
    this.access = Object.freeze({
      registerTool: (name, func, schema) => {
        needed(extension, 'TOOLS');
        if (typeof name !== 'string' || !/^[A-Za-z0-9_.-]{1,80}$/.test(name))
          throw badInput('name', 'is no name of a tool');
        if (typeof func !== 'function') throw badInput('func', 'must be a function');
        const full = `${id}.${name}`;
        const kept = copyOf(schema);
        tools.register(full, describe(name, kept), kept, async (args, call) => {
          beginServing(extension, call.actAs);
          try {
            return await enter(() => func(args, call));
          } finally {
            endServing(extension, call.actAs);
          }
        });
        this.#own.add(full);
      },
      listTools: () => tools.list(id).map(lent),
      getTool: (name) => {
        const view = tools.get(name, id);
        return view === undefined ? undefined : lent(view);
      },
      noteRefusal: async (name, { actAs, onBehalfOf, code }) => {
        needed(extension, 'TOOLS');
        await checkActing(extension, actAs, agents);
        const origin = originOf(onBehalfOf);
        if (origin !== undefined) tools.noteRefusal(name, { actAs, origin, code });
      },
    } satisfies ToolAccess);
  }

  /** Takes its tools away; calls under way go on. */
  close(): void {
    for (const name of this.#own) this.#tools.unregister(name);
    this.#own.clear();
  }
}

/**
 * Whatever becomes of the object that was given, lists of tools show what was compiled.
 * @throws ExtensionError `bad_request` for what is no JSON object
 */
function copyOf(schema: unknown): object {
  let copy: unknown;
  try {
    copy = JSON.parse(JSON.stringify(schema));
  } catch {
    throw badInput('schema', 'must be JSON');
  }
  if (typeof copy === 'object' && copy !== null && !Array.isArray(copy)) return copy;
  throw badInput('schema', 'must be an object');
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
