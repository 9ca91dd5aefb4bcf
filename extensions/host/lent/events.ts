import { topicPatternFault, compileTopicPattern } from '../../../domain/schedule/topic-pattern.ts';
import { badInput, type EventAccess } from '../../contract.ts';
import { needed } from '../context.ts';
import type { Duty } from '../duty.ts';
import type { Extension } from '../extension.ts';
import type { HostDependencies } from '../ports.ts';
import { PublishingGate } from './publishing-gate.ts';
import { Subscription } from './subscription.ts';
import { namedWhenLate } from '../unsettled.ts';

/** An extension's access to the service's topics. @param enter calls into the extension's code */
export function eventAccess(
  extension: Extension,
  dependencies: HostDependencies,
  duty: Duty,
  enter: <T>(call: () => T) => T,
  fault: (what: string, error: unknown) => void,
): EventAccess {
  const subscriptions = new Map<string, Subscription>();
  const { settings, clock } = dependencies;
  const gate = new PublishingGate(extension, settings, clock, (error) => fault('events', error));
  return Object.freeze({
    async publish(topic, data) {
      needed(extension, 'EVENTS_PUB');
      await gate.pass();
      return dependencies.agents.publish(extension, topic, data);
    },
    async subscribe(pattern, handler) {
      needed(extension, 'EVENTS_SUB');
      const wrong = typeof pattern === 'string' ? topicPatternFault(pattern) : 'must be a text';
      if (wrong !== null) throw badInput('pattern', wrong);
      if (subscriptions.has(pattern)) throw new Error(`${pattern} is subscribed already`);
      const what = `subscriber of ${pattern}`;
      const subscription = new Subscription({
        ...dependencies,
        what,
        name: `extension ${extension.id} ${pattern}`,
        pattern: compileTopicPattern(pattern),
        handle: (event, signal) =>
          namedWhenLate(
            extension,
            `${what}: the event ${event.id}`,
            settings.extensionSeconds * 1000,
            (error) => fault(`${what}: the event ${event.id}`, error),
            enter(async () => handler(event, signal)),
          ),
        failed: (error) => fault(what, error),
      });
      subscriptions.set(pattern, subscription);
      try {
        await subscription.begin();
      } catch (error) {
        // Nothing is subscribed: it may be asked for again.
        if (subscriptions.get(pattern) === subscription) subscriptions.delete(pattern);
        throw error;
      }
      if (subscriptions.get(pattern) === subscription) duty.add(subscription);
      // It was unsubscribed meanwhile.
      else await subscription.forget();
    },
    async unsubscribe(pattern) {
      needed(extension, 'EVENTS_SUB');
      const subscription = subscriptions.get(pattern);
      if (subscription === undefined) return;
      subscriptions.delete(pattern);
      await duty.remove(subscription);
      await subscription.forget();
    },
  } satisfies EventAccess);
}
