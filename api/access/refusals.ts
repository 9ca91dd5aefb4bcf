import { streams } from '../../domain/streams.ts';
import { CappedRecord, type Noted, type RecordParts } from './capped-record.ts';

/** A request that was refused. */
export interface Refused extends Noted {
  /** Who was refused, or whose name was used. */
  readonly agentId: string;
  /** Method and path as the interface's description writes it. */
  readonly action: string;
  /** The path as it was asked for. */
  readonly path: string;
  readonly status: number;
  readonly code: string;
}

/** The record of what was not allowed. */
export class Refusals extends CappedRecord<Refused> {
  constructor(parts: RecordParts) {
    super(parts, {
      what: 'refused commands',
      keyOf: ({ action, status, code }) => `${status} ${code} ${action}`,
      streamOf: streams.refusals,
      eventOf({ agentId, action, path, status, code }, counted, isSum) {
        const told = { agent_id: agentId, action, status, code, path: isSum ? null : path };
        return { type: 'CommandRefused', data: { ...told, ...counted } };
      },
    });
  }
}
