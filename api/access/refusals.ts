import { streams } from '../../domain/streams.ts';
import { CappedRecord, type Noted, type RecordParts } from './capped-record.ts';

/** A request that was refused, to an agent or in its name. */
export interface Refused extends Noted {
  /** Method and path as the interface's description writes them. */
  readonly action: string;
  /** The path as it was sent. */
  readonly path: string;
  readonly status: number;
  readonly code: string;
}

/** The record of refused requests. */
export class Refusals extends CappedRecord<Refused> {
  constructor(parts: RecordParts) {
    super(parts, {
      what: 'refused commands',
      keyOf: ({ action, status, code }) => `${status} ${code} ${action}`,
      streamOf: streams.refusals,
      eventOf({ agentId, action, path, status, code }, counted, isSum) {
        const data = { agent_id: agentId, action, status, code, path: isSum ? null : path };
        return { type: 'CommandRefused', data: { ...data, ...counted } };
      },
    });
  }
}
