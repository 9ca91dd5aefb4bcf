import type { Request } from 'express';
import { DEFAULT_NAMESPACE } from '../../../domain/namespaces/namespace.ts';
import { badInput, type ToolAccess, type ToolView } from '../../contract.ts';
import { beginServing, checkActingAgent, endServing, servedNamespace } from './served-agents.ts';
import { requireCapability } from '../context.ts';
import type { Extension } from '../extension.ts';
import type { AgentPort, ProvidedTool, RequestOrigin, ToolPort, ToolUser } from '../ports.ts';

/** An extension's access to the tool registry. Its own tools are named `<id>.<name>`. */
export class ExtensionTools {
  readonly access: ToolAccess;
  readonly #tools: ToolPort;
  readonly #registered = new Set<string>();

  /**
   * @param enter calls the extension's code
   * @param originOf origin of a request that was routed to the extension
   */
  constructor(
    extension: Extension,
    { tools, agents }: { readonly tools: ToolPort; readonly agents: AgentPort },
    enter: <T>(call: () => T) => T,
    originOf: (request: Request) => RequestOrigin | undefined,
  ) {
    const { id } = extension;
    const viewOf = (view: ProvidedTool): ToolView =>
      Object.freeze({
        ...view,
        async call(args, { onBehalfOf, ...options }) {
          requireCapability(extension, 'TOOLS');
          await checkActingAgent(extension, options.actAs, agents);
          const namespace = await agents.namespaceOf(options.actAs);
          const origin = onBehalfOf === undefined ? undefined : originOf(onBehalfOf);
          return view.call(args, { ...options, namespace, origin });
        },
      } satisfies ToolView);
    const callerFor = (actAs: string | undefined): ToolUser => {
      const namespace = actAs === undefined ? DEFAULT_NAMESPACE : servedNamespace(extension, actAs);
      return { extensionId: id, namespace };
    };
    this.#tools = tools;
    this.access = Object.freeze({
      registerTool: (name, func, schema) => {
        requireCapability(extension, 'TOOLS');
        if (typeof name !== 'string' || !/^[A-Za-z0-9_.-]{1,80}$/.test(name)) {
          throw badInput('name', 'must be 1 to 80 characters of A–Z a–z 0–9 _ . -');
        }
        if (typeof func !== 'function') throw badInput('func', 'must be a function');
        const fullName = `${id}.${name}`;
        const ownSchema = copySchema(schema);
        tools.register(fullName, descriptionOf(name, ownSchema), ownSchema, async (args, call) => {
          beginServing(extension, { agentId: call.actAs, namespace: call.namespace });
          try {
            return await enter(() => func(args, call));
          } finally {
            endServing(extension, call.actAs);
          }
        });
        this.#registered.add(fullName);
      },
      listTools: ({ actAs } = {}) => tools.list(callerFor(actAs)).map(viewOf),
      getTool: (name, { actAs } = {}) => {
        const view = tools.get(name, callerFor(actAs));
        return view === undefined ? undefined : viewOf(view);
      },
      noteRefusal: async (name, { actAs, onBehalfOf, code }) => {
        requireCapability(extension, 'TOOLS');
        await checkActingAgent(extension, actAs, agents);
        const origin = originOf(onBehalfOf);
        const namespace = await agents.namespaceOf(actAs);
        if (origin !== undefined) tools.noteRefusal(name, { actAs, namespace, origin, code });
      },
    } satisfies ToolAccess);
  }

  /** Unregisters its tools. Calls in progress continue. */
  close(): void {
    for (const name of this.#registered) this.#tools.unregister(name);
    this.#registered.clear();
  }
}

/**
 * Copies a schema, so later changes by the extension have no effect.
 * @throws ExtensionError `bad_request` if it is not a JSON object
 */
function copySchema(schema: unknown): object {
  let copy: unknown;
  try {
    copy = JSON.parse(JSON.stringify(schema));
  } catch {
    throw badInput('schema', 'must be JSON');
  }
  if (typeof copy === 'object' && copy !== null && !Array.isArray(copy)) return copy;
  throw badInput('schema', 'must be an object');
}

/** The schema's description, or words made from the name: `sendMail` → `Send mail`. */
function descriptionOf(name: string, schema: object): string {
  const description = (schema as { readonly description?: unknown } | null)?.description;
  if (typeof description === 'string' && description !== '') return description;
  const words = name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll(/[_.-]+/g, ' ')
    .trim()
    .toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}
