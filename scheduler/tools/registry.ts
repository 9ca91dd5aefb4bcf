import { argumentCheck, type ArgumentCheck } from '../../domain/pipeline/arguments.ts';
import type { KnownTools } from '../../domain/pipeline/check-payload.ts';
import type { Tool } from './tool.ts';

/** A tool with its compiled schema. */
export interface RegisteredTool {
  readonly tool: Tool;
  /** Validates arguments. */
  readonly check: ArgumentCheck;
}

/** The tools of this process, by name. */
export class ToolRegistry implements KnownTools {
  readonly #tools = new Map<string, RegisteredTool>();
  #revision = 0;
  readonly builtIn: readonly Tool[];

  constructor(builtIn: readonly Tool[] = []) {
    this.builtIn = builtIn;
    for (const tool of builtIn) this.register(tool);
  }

  /** Changes with each registered or removed tool. */
  get revision(): number {
    return this.#revision;
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
    return this.#tools.get(name)?.tool;
  }

  /** A tool with its compiled schema. */
  find(name: string): RegisteredTool | undefined {
    return this.#tools.get(name);
  }

  schemaOf(name: string): object | undefined {
    return this.#tools.get(name)?.tool.schema;
  }

  /** All tools, by name. */
  list(): readonly Tool[] {
    return [...this.#tools.values()]
      .map(({ tool }) => tool)
      .sort((one, other) => (one.name < other.name ? -1 : 1));
  }
}
