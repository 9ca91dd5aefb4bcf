import { argumentCheck, type ArgumentCheck } from '../../domain/pipeline/arguments.ts';
import type { KnownTools } from '../../domain/pipeline/check-payload.ts';
import type { Tool } from './tool.ts';
import { workerTool, type OfferedTools } from './worker-tools.ts';

/** A tool with its compiled schema. */
export interface RegisteredTool {
  readonly tool: Tool;
  /** Validates arguments. */
  readonly check: ArgumentCheck;
}

/** The tools of this process, by name; then those that workers offer. */
export class ToolRegistry implements KnownTools {
  readonly #tools = new Map<string, RegisteredTool>();
  #revision = 0;
  #offered: OfferedTools | null = null;
  readonly builtIn: readonly Tool[];

  constructor(builtIn: readonly Tool[] = []) {
    this.builtIn = builtIn;
    for (const tool of builtIn) this.register(tool);
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
    if (this.#tools.has(tool.name))
      throw new Error(`a tool named ${tool.name} is already registered`);
    this.#tools.set(tool.name, { tool, check: argumentCheck(tool.schema) });
    this.#revision += 1;
  }

  /** Removes a tool, if it exists. Running calls continue. */
  unregister(name: string): void {
    if (this.#tools.delete(name)) this.#revision += 1;
  }

  get(name: string): Tool | undefined {
    return this.find(name)?.tool;
  }

  /** A tool with its compiled schema. */
  find(name: string): RegisteredTool | undefined {
    const own = this.#tools.get(name);
    if (own !== undefined) return own;
    const offered = this.#offered?.tool(name);
    return offered === undefined ? undefined : workerTool(offered);
  }

  schemaOf(name: string): object | undefined {
    return this.find(name)?.tool.schema;
  }

  /** All tools, by name. */
  list(): readonly Tool[] {
    const offered = [...(this.#offered?.tools() ?? [])].filter(({ name }) => !this.isOwn(name));
    return [...this.#tools.values(), ...offered.map(workerTool)]
      .map(({ tool }) => tool)
      .sort((one, other) => (one.name < other.name ? -1 : 1));
  }
}
