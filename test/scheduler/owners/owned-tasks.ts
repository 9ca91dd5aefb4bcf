import { disableAgentCommand, enableAgentCommand } from '../../../domain/agents/agent-disabling.ts';
import {
  registerAgentCommand,
  updateAgentCommand,
} from '../../../domain/agents/agent-registration.ts';
import type { DisabledRuns, MisfirePolicy } from '../../../domain/vocabulary.ts';
import type { World } from '../scheduler-world.ts';

/** What happens to the agents that own the tasks of a world. */
export class OwnedTasks {
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  async register(id: string, scopes: readonly string[] = ['tasks:write']): Promise<void> {
    const fields = { name: id, scopes, webhook_url: null };
    await registerAgentCommand(this.#world.store, id, fields, null, this.#world.context());
    await this.#world.idle();
  }

  async disable(agentId: string, runs: DisabledRuns = 'finish'): Promise<void> {
    const { store } = this.#world;
    const context = this.#world.context();
    async function* others(): AsyncGenerator<string> {}
    await disableAgentCommand({ store, agentId, runs, others, context });
    await this.#world.idle();
  }

  async enable(agentId: string, missed: MisfirePolicy = 'skip'): Promise<void> {
    await enableAgentCommand(this.#world.store, agentId, missed, this.#world.context());
    await this.#world.idle();
  }

  async grant(agentId: string, scopes: readonly string[]): Promise<void> {
    const { store } = this.#world;
    await updateAgentCommand(store, agentId, { scopes }, this.#world.context());
    await this.#world.idle();
  }
}
