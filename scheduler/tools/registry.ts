import {
  argumentCheck,
  ownArgumentCheck,
  type ArgumentCheck,
} from '../../domain/pipeline/arguments.ts';
import type { KnownTools } from '../../domain/pipeline/check-payload.ts';
import type { Tool } from './tool.ts';
import { workerTool, type OfferedTools } from './worker-tools.ts';

/** A tool with its compiled schema. */
export interface RegisteredTool {
  readonly tool: Tool;
  /** Validates arguments. */
  readonly check: ArgumentCheck;
}

/** The tools that pipelines of one namespace can use. */
export interface NamespaceTools extends KnownTools {
  /** A tool with its compiled schema. */
  find(name: string): RegisteredTool | undefined;
  /** All tools, by name. */
  list(): readonly Tool[];
}

/**
 * The tools of this process, which every namespace has, followed by those that workers offer, each in the namespace of
 * its worker.
 */
export class ToolRegistry {
  readonly #tools = new Map<string, RegisteredTool>();
  readonly #namespaces = new Map<string, NamespaceTools>();
  #revision = 0;
  #offered: OfferedTools | null = null;
  readonly builtIn: readonly Tool[];

  constructor(builtIn: readonly Tool[] = []) {
    this.builtIn = builtIn;
    for (const tool of builtIn) this.#add(tool, ownArgumentCheck);
  }

  /** Changes with each registered or removed tool. */
  get revision(): number {
    return this.#revision + (this.#offered?.revision ?? 0);
  }

  /** Adds the tools of workers. The process's own tools come first. */
  addOffered(offered: OfferedTools): void {
    this.#offered = offered;
  }

  /** Whether a tool is the process's own, so that no worker may offer it. */
  isOwn(name: string): boolean {
    return this.#tools.has(name);
  }

  /** @throws Error when the name is taken or the schema is not a valid JSON schema */
  register(tool: Tool): void {
    this.#add(tool, argumentCheck);
  }

  /** Removes a tool, if it exists. Running calls continue. */
  unregister(name: string): void {
    if (this.#tools.delete(name)) this.#revision += 1;
  }

  /** A live view of the tools that the pipelines of a namespace can use. */
  of(namespace: string): NamespaceTools {
    const known = this.#namespaces.get(namespace);
    if (known !== undefined) return known;
    const find = (name: string): RegisteredTool | undefined => this.#find(namespace, name);
    const tools: NamespaceTools = {
      find,
      schemaOf: (name) => find(name)?.tool.schema,
      isOwn: (name) => this.isOwn(name),
      names: () => this.#list(namespace).map(({ name }) => name),
      list: () => this.#list(namespace),
    };
    this.#namespaces.set(namespace, tools);
    return tools;
  }

  #add(tool: Tool, compile: (schema: object) => ArgumentCheck): void {
    if (this.#tools.has(tool.name))
      throw new Error(`a tool named ${tool.name} is already registered`);
    this.#tools.set(tool.name, { tool, check: compile(tool.schema) });
    this.#revision += 1;
  }

  #find(namespace: string, name: string): RegisteredTool | undefined {
    const own = this.#tools.get(name);
    if (own !== undefined) return own;
    const offered = this.#offered?.tool(namespace, name);
    return offered === undefined ? undefined : workerTool(offered);
  }

  #list(namespace: string): readonly Tool[] {
    const offered = [...(this.#offered?.tools(namespace) ?? [])];
    const ofWorkers = offered.filter(({ name }) => !this.isOwn(name)).map(workerTool);
    return [...this.#tools.values(), ...ofWorkers]
      .map(({ tool }) => tool)
      .sort((one, other) => (one.name < other.name ? -1 : 1));
  }
}
