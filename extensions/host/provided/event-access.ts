import { topicPatternIssue, compileTopicPattern } from '../../../domain/schedule/topic-pattern.ts';
import { badInput, type EventAccess } from '../../contract.ts';
import { requireCapability } from '../context.ts';
import type { LeasedWork } from '../leased-work.ts';
import type { Extension } from '../extension.ts';
import type { HostDependencies } from '../ports.ts';
import { publishRateLimit } from './publish-rate-limit.ts';
import type { RetriedWork } from '../retried-work.ts';
import { Subscription } from './subscription.ts';
import { reportOverdue } from '../overdue-work.ts';

/**
 * An extension's access to topics.
 * @param enter calls the extension's code
 * @param reportOf reports failures of a subscriber, by its label
 */
export function eventAccess(
  extension: Extension,
  dependencies: HostDependencies,
  leasedWork: LeasedWork,
  enter: <T>(call: () => T) => T,
  noteError: (label: string, error: unknown) => void,
  reportOf: (label: string) => RetriedWork,
): EventAccess {
  const subscriptions = new Map<string, Subscription>();
  const { settings, clock } = dependencies;
  const checkRateLimit = publishRateLimit(extension, settings, clock, (error) =>
    noteError('events', error),
  );
  return Object.freeze({
    async publish(topic, data) {
      requireCapability(extension, 'EVENTS_PUB');
      await checkRateLimit();
      return dependencies.agents.publish(extension, topic, data);
    },
    async subscribe(pattern, handler) {
      requireCapability(extension, 'EVENTS_SUB');
      const issue = typeof pattern === 'string' ? topicPatternIssue(pattern) : 'must be a string';
      if (issue !== null) throw badInput('pattern', issue);
      if (subscriptions.has(pattern)) throw new Error(`already subscribed to ${pattern}`);
      const label = `subscriber of ${pattern}`;
      const subscription = new Subscription({
        ...dependencies,
        label,
        name: `extension ${extension.id} ${pattern}`,
        pattern: compileTopicPattern(pattern),
        handle: (event, signal, published) =>
          dependencies.duringEvent(published, () =>
            reportOverdue(
              extension,
              `${label}: the event ${event.id}`,
              settings.extensionSeconds * 1000,
              (error) => noteError(`${label}: the event ${event.id}`, error),
              enter(async () => handler(event, signal)),
            ),
          ),
        handling: reportOf(label),
      });
      subscriptions.set(pattern, subscription);
      try {
        await subscription.fixStart();
      } catch (error) {
        // The pattern may be subscribed again.
        if (subscriptions.get(pattern) === subscription) subscriptions.delete(pattern);
        throw error;
      }
      if (subscriptions.get(pattern) === subscription) leasedWork.add(subscription);
      // The pattern was unsubscribed in the meantime.
      else await subscription.forget();
    },
    async unsubscribe(pattern) {
      requireCapability(extension, 'EVENTS_SUB');
      const subscription = subscriptions.get(pattern);
      if (subscription === undefined) return;
      subscriptions.delete(pattern);
      await leasedWork.remove(subscription);
      await subscription.forget();
    },
  } satisfies EventAccess);
}
