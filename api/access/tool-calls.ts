import type { ToolCallOutcome } from '../../domain/events/audit-events.ts';
import { streams } from '../../domain/streams.ts';
import { CappedRecord, type Noted, type RecordParts } from './capped-record.ts';

/** A tool that an agent called outside of any run. Arguments and results are not recorded. */
export interface ToolCalled extends Noted {
  readonly tool: string;
  readonly outcome: ToolCallOutcome;
  /** The code of the error; null if there was none. */
  readonly code: string | null;
}

/** The record of direct calls of tools. */
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
