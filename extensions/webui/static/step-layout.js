// The steps of a pipeline, their order, and where each is drawn.

/** Sizes of the drawing, in pixels. */
const BOX = { width: 190, height: 56, gap: 14 };
const COLUMN_GAP = 44;
/** The height of a group's title, and the space around its steps. */
const HEAD = 28;
const PADDING = 8;
/** The height that a line takes in a column that it crosses. */
const LANE = 14;

/**
 * The steps of a pipeline, each with the ids of the steps that it comes `after`. Steps without an id get the one that
 * the service gives them. Without any `needs`, the pipeline is a sequence.
 */
export function stepsOf(pipeline) {
  const isGraph = pipeline.some(({ needs }) => needs !== undefined);
  const ids = pipeline.map(({ id }, n) => id ?? `step_${n}`);
  return pipeline.map((step, n) => ({
    id: ids[n],
    ...contentOf(step),
    after: isGraph ? (step.needs ?? []).filter((each) => ids.includes(each)) : ids.slice(n - 1, n),
    steps: (step.parallel ?? []).map((child, m) => ({
      id: child.id ?? `step_${n}_${m}`,
      ...contentOf(child),
    })),
  }));
}

const contentOf = ({ uses, for_each: items }) => ({
  uses: items === undefined ? uses : `${uses}, for each item`,
});

/**
 * Where the steps and the lines between them are drawn. A line that crosses a column has a place of its own there.
 * Otherwise it would seem to come from a step that it passes.
 * @returns `{width, height, boxes, lines}`; boxes have a `step`, `x`, `y`, `width` and `height`; lines have `points`,
 *   with a curve from each even point to the next
 */
export function layoutOf(steps) {
  const columnOf = columnsOf(steps);
  const width = BOX.width + 2 * PADDING;
  const places = new Map();
  const boxes = [];
  let height = 0;
  slotsOf(steps, columnOf).forEach((slots, column) => {
    let y = 0;
    for (const slot of sorted(slots, column, places)) {
      const x = column * (width + COLUMN_GAP);
      if (slot.step !== undefined) boxes.push({ ...slot, x, y, width });
      places.set(slot.key, { x, y: y + slot.height / 2 });
      y += slot.height + BOX.gap;
    }
    height = Math.max(height, y - BOX.gap);
  });
  const lineOf = (from, to) => {
    const points = [{ x: places.get(from).x + width, y: places.get(from).y }];
    for (let n = columnOf.get(from) + 1; n < columnOf.get(to); n += 1) {
      const { x, y } = places.get(laneKey(from, n));
      points.push({ x, y }, { x: x + width, y });
    }
    return { points: [...points, places.get(to)] };
  };
  const lines = steps.flatMap(({ id, after }) => after.map((each) => lineOf(each, id)));
  const columns = Math.max(0, ...columnOf.values()) + 1;
  return { width: columns * (width + COLUMN_GAP) - COLUMN_GAP, height, boxes, lines };
}

/** The column of each step: to the right of all the steps that it comes after. */
function columnsOf(steps) {
  const byId = new Map(steps.map((step) => [step.id, step]));
  const columns = new Map();
  const place = (id) => {
    if (!columns.has(id)) {
      columns.set(id, 0);
      columns.set(id, Math.max(-1, ...byId.get(id).after.map(place)) + 1);
    }
    return columns.get(id);
  };
  for (const { id } of steps) place(id);
  return columns;
}

/** The key of a line in a column. It equals no step's id, as ids have no brackets. */
const laneKey = (from, column) => `[${column}] ${from}`;

/** The contents of each column: steps, and lines that cross it. */
function slotsOf(steps, columnOf) {
  const columns = [];
  const last = new Map();
  for (const step of steps) {
    const { id, after } = step;
    (columns[columnOf.get(id)] ??= []).push({ key: id, step, after, height: heightOf(step) });
    for (const each of after) last.set(each, Math.max(last.get(each) ?? 0, columnOf.get(id)));
  }
  for (const [id, end] of last) {
    for (let n = columnOf.get(id) + 1; n < end; n += 1) {
      columns[n].push({ key: laneKey(id, n), after: [id], height: LANE });
    }
  }
  return columns;
}

const heightOf = ({ steps }) =>
  steps.length === 0 ? BOX.height : HEAD + steps.length * (BOX.height + PADDING);

/** Sorts a column by height, so that each entry is level with the steps that it comes after. */
function sorted(slots, column, places) {
  const levelOf = ({ after }) => {
    const levels = after.map(
      (each) => (places.get(laneKey(each, column - 1)) ?? places.get(each)).y,
    );
    return levels.reduce((sum, each) => sum + each, 0) / Math.max(1, levels.length);
  };
  return slots.toSorted((a, b) => levelOf(a) - levelOf(b));
}
