import type { ToolCallOutcome } from '../../domain/events/audit-events.ts';
import { streams } from '../../domain/streams.ts';
import { CappedRecord, type Noted, type RecordParts } from './capped-record.ts';

/** A tool that an agent has called directly, past any run. Neither arguments nor results are recorded. */
export interface ToolCalled extends Noted {
  readonly tool: string;
  readonly outcome: ToolCallOutcome;
  /** Of the error; null where there was none. */
  readonly code: string | null;
}

/** The record of tools that were called directly. */
export class ToolCalls extends CappedRecord<ToolCalled> {
  constructor(parts: RecordParts) {
    super(parts, {
      what: 'calls of tools',
      keyOf: ({ tool, outcome, code }) => `${outcome} ${String(code)} ${tool}`,
      streamOf: streams.toolCalls,
      eventOf: ({ agentId, tool, outcome, code }, counted) => ({
        type: 'ToolCalled',
        data: { agent_id: agentId, tool, outcome, code, ...counted },
      }),
    });
  }
}
