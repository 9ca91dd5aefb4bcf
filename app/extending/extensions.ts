import { join } from 'node:path';
import type { QuotaParts } from '../../api/access/count-quotas.ts';
import type { TokenKeys } from '../../api/access/tokens.ts';
import { ToolCalls } from '../../api/access/tool-calls.ts';
import type { Clock } from '../../domain/clock.ts';
import { ExtensionHost } from '../../extensions/host/host.ts';
import type { HttpPort } from '../../extensions/host/ports.ts';
import type { ProcessTelemetry } from '../../observability/create-telemetry.ts';
import { CallSlots } from '../../scheduler/call-slots.ts';
import type { ToolRegistry } from '../../scheduler/tools/registry.ts';
import type { Causation } from '../causation.ts';
import { Containment } from './containment.ts';
import type { Configuration } from '../configuration/configuration.ts';
import { LoopbackCore } from './core-client.ts';
import { ExpressionPool } from '../roles/expressions/expression-pool.ts';
import { ExtensionAgents } from './extension-agents.ts';
import { checkDescription } from './extension-descriptions.ts';
import { DirectCalls } from './direct-calls.ts';
import { toolPort } from './extension-tools.ts';
import { ExtensionWatchdog } from './extension-watchdog.ts';
import type { Supervisor } from '../roles/supervisor.ts';
import type { LiveIndexes } from '../roles/live-indexes.ts';
import type { Stores } from '../stores.ts';

/** The extensions of a process, and their means to call it. */
export interface ProcessExtensions {
  readonly host: ExtensionHost;
  readonly core: LoopbackCore;
  /** Slots for direct tool calls. */
  readonly calls: CallSlots;
  close(): Promise<void>;
}

/** Finds the extensions of this process and starts their setup. Readiness waits until it has ended. */
export async function startExtensions(options: {
  readonly configuration: Configuration;
  readonly stores: Stores;
  readonly indexes: LiveIndexes;
  readonly clock: Clock;
  readonly telemetry: ProcessTelemetry;
  readonly supervisor: Supervisor;
  readonly tools: ToolRegistry;
  readonly member: string;
  readonly version: string;
  readonly causation: Causation;
  /** Decides about the quotas of namespaces. */
  readonly quotaParts: QuotaParts;
  /** Sign the tokens of extensions' agents. */
  readonly keys: Pick<TokenKeys, 'jwtKey'>;
  /** null without the role `api`. */
  readonly http: HttpPort | null;
}): Promise<ProcessExtensions> {
  const { configuration, stores, indexes, clock, telemetry, supervisor } = options;
  const { tools, causation } = options;
  const { store, coordination } = stores;
  const { roles, production } = configuration;
  const core = new LoopbackCore(clock, telemetry.traces, causation);
  const agents = new ExtensionAgents({
    store,
    indexes,
    clock,
    keys: options.keys,
    tokenSeconds: configuration.accessTokenSeconds,
    causation,
    quotaParts: options.quotaParts,
    signal: supervisor.signal,
  });
  const calls = new CallSlots(configuration.workerConcurrency, clock);
  const record = new ToolCalls({ store, clock, telemetry });
  // Direct calls have their own, so that the runs of this process do not delay them.
  const evaluator = new ExpressionPool({ size: 1 });
  const direct = new DirectCalls({ slots: calls, record, clock });
  const containment = new Containment((id, what, error) => host.reportError(id, what, error));
  const host: ExtensionHost = new ExtensionHost({
    store,
    coordination,
    clock,
    telemetry,
    settings: {
      ...configuration,
      extensionPaths: configuration.extPaths ?? [],
      allowedPlugins: configuration.extPlugins,
      extensionGrants: configuration.extGrants ?? {},
      runsTools: roles.includes('worker'),
    },
    service: Object.freeze({
      version: options.version,
      production,
      metricsText: () => telemetry.metrics.text(),
    }),
    tools: toolPort(tools, clock, telemetry.log, direct, causation, evaluator),
    core,
    http: options.http,
    agents,
    duringEvent: ({ metadata }, call) => causation.during({ publication: metadata }, call),
    contain(id, call) {
      watchdog.begin();
      return containment.enter(id, call);
    },
    release: (id) => containment.release(id),
    checkEndpoints: checkDescription,
    member: options.member,
  });
  const watchdog = new ExtensionWatchdog({
    extensions: () => host.folders(),
    log: telemetry.log,
    logLevel: configuration.logLevel,
    blocked: ({ extension, seconds, where }) => {
      telemetry.count('extension_blocked_total', { extension });
      const error = new Error(`blocked for ${seconds.toFixed(1)} s by ${where}`);
      host.reportError(extension, 'event loop', error);
    },
  });
  const project = join(import.meta.dirname, '../..');
  // In the compiled form, the project's packages are one level up.
  await host.start([project, join(project, '..'), process.cwd()]);
  supervisor.superviseOnce('loading extensions', () => host.loaded);
  return {
    host,
    core,
    calls,
    async close() {
      await host.close();
      await record.close();
      await evaluator.close();
      await watchdog.close();
      containment.close();
      core.close();
    },
  };
}
