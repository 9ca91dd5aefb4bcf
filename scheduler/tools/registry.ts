import { argumentCheck, type ArgumentCheck } from '../../domain/pipeline/arguments.ts';
import type { KnownTools } from '../../domain/pipeline/check.ts';
import type { Tool } from './tool.ts';

/** A tool with its compiled schema. */
export interface RegisteredTool {
  readonly tool: Tool;
  /** Says what is wrong with arguments. */
  readonly check: ArgumentCheck;
}

/** The tools of this process, by name. */
export class ToolRegistry implements KnownTools {
  private readonly tools = new Map<string, RegisteredTool>();
  private changes = 0;
  /** The tools of the service itself. */
  readonly builtIn: readonly Tool[];

  constructor(builtIn: readonly Tool[] = []) {
    this.builtIn = builtIn;
    for (const tool of builtIn) this.register(tool);
  }

  /** Another one after each tool that has come or gone. */
  get revision(): number {
    return this.changes;
  }

  /**
   * Adds a tool.
   * @throws Error when the name is taken, or the schema is no valid JSON schema
   */
  register(tool: Tool): void {
    if (this.tools.has(tool.name)) throw new Error(`there is a tool named ${tool.name} already`);
    this.tools.set(tool.name, { tool, check: argumentCheck(tool.schema) });
    this.changes += 1;
  }

  /** Takes a tool away; calls under way go on. Nothing when there is none of that name. */
  unregister(name: string): void {
    if (this.tools.delete(name)) this.changes += 1;
  }

  get(name: string): Tool | undefined {
    return this.tools.get(name)?.tool;
  }

  /** The tool with its compiled schema, as the execution wants it. */
  find(name: string): RegisteredTool | undefined {
    return this.tools.get(name);
  }

  schemaOf(name: string): object | undefined {
    return this.tools.get(name)?.tool.schema;
  }

  /** All tools, by name. */
  list(): readonly Tool[] {
    return [...this.tools.values()]
      .map(({ tool }) => tool)
      .sort((one, other) => (one.name < other.name ? -1 : 1));
  }
}
