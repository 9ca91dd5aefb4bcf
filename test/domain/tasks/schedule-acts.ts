import fc from 'fast-check';
import { nextFireOf } from '../../../domain/tasks/schedule-state.ts';
import { misfirePolicies } from '../../../domain/vocabulary.ts';
import { minute, type Story } from './schedule-story.ts';

/** An event in the life of a task. */
export type Act =
  | { readonly kind: 'pass'; readonly ms: number }
  | { readonly kind: 'look' | 'lookAll' | 'pause' | 'race' | 'cancel' }
  | { readonly kind: 'resume' | 'release'; readonly missed: (typeof misfirePolicies)[number] }
  | { readonly kind: 'snooze'; readonly seconds: number; readonly stale: boolean }
  | { readonly kind: 'update'; readonly expr: string };

export const expressions = [
  '* * * * *',
  '*/7 * * * *',
  '0 * * * *',
  '30 */2 * * * *',
  '15,45 * * * * *',
];

export const act: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('pass' as const),
      ms: fc.integer({ min: 0, max: 30 * minute }),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constantFrom('look' as const, 'lookAll' as const) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('pause' as const, 'race' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constantFrom('resume' as const, 'release' as const),
      missed: fc.constantFrom(...misfirePolicies),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('snooze' as const),
      seconds: fc.integer({ min: 1, max: 3600 }),
      stale: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('update' as const),
      expr: fc.constantFrom(...expressions),
    }),
  },
);

export const settings = fc.record({
  schedule_expr: fc.constantFrom(...expressions),
  misfire_policy: fc.constantFrom(...misfirePolicies),
  misfire_grace_seconds: fc.constantFrom(0, 60, 600, 86_400),
  max_runs: fc.option(fc.integer({ min: 1, max: 40 }), { nil: null }),
});

/** Performs an act if the service would allow it. */
export function perform(story: Story, next: Act): void {
  switch (next.kind) {
    case 'pass':
      story.pass(next.ms);
      break;
    case 'look':
      story.look();
      break;
    case 'lookAll':
      story.lookAll();
      break;
    case 'race': {
      // A scheduler decides while the task is being changed, without knowledge of the change. Both are written.
      const decision = story.decision();
      if (story.state.status === 'active') story.update({ schedule_expr: '*/5 * * * *' });
      story.write(decision);
      break;
    }
    case 'pause':
      if (story.state.status === 'active') story.pause();
      break;
    case 'resume':
      if (story.state.status === 'paused') story.resume(next.missed);
      break;
    case 'release':
      story.release(next.missed);
      break;
    case 'snooze':
      if (story.state.status === 'active' && nextFireOf(story.state) !== null) {
        const known = story.state;
        if (next.stale) story.look();
        story.snooze(next.seconds, known);
      }
      break;
    case 'update':
      story.update({ schedule_expr: next.expr });
      break;
    case 'cancel':
      story.cancel();
      break;
  }
}
