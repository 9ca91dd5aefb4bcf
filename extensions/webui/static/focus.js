// Keeps the keyboard's focus: when the focused element is removed, the element in its place gets the focus.

/** The elements at which the Tab key stops. */
const CONTROLS =
  ':is(a[href], button, input, select, textarea, summary, [tabindex="0"]):not([tabindex="-1"], :disabled)';

/**
 * The last control that had the focus: `{control, around}`. `around` has the elements around it up to the view, the
 * nearest first, each with the number of controls before it there.
 */
let place = null;

/** The same for the view behind the open dialog, or behind the last one. */
let behind = null;

/** Follows the focus from now on. */
export function followFocus() {
  addEventListener('focusin', ({ target }) => remember(target));
  // A person who clicks beside all controls wants none to have the focus.
  addEventListener('pointerdown', ({ target }) => {
    if (target.closest(`dialog, ${CONTROLS}`) === null) place = behind = null;
  });
  new MutationObserver(keep).observe(document.body, { childList: true, subtree: true });
}

function keep(records) {
  if (place === null) return;
  const { control } = place;
  if (document.activeElement === control) remember(control);
  else if (isLost() && wasRemoved(control, records)) restore();
}

const isLost = () => document.activeElement === null || document.activeElement === document.body;

const wasRemoved = (control, records) =>
  records.some(({ removedNodes }) => [...removedNodes].some((each) => each.contains(control)));

function remember(control) {
  const around = [];
  for (let each = control.parentElement; each !== null; each = each.parentElement) {
    const before = [...each.querySelectorAll(CONTROLS)].filter((one) => isBefore(one, control));
    around.push([each, before.length]);
    if (each.id === 'content') break;
  }
  place = { control, around };
  if (!isInDialog(control)) behind = place;
}

const isInDialog = (control) => control.closest('dialog') !== null;

const isBefore = (one, other) =>
  (one.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0;

function restore() {
  // The browser itself returns to the element that opened a dialog, unless that element was removed too.
  if (isInDialog(place.control) && !place.control.isConnected) place = behind;
  if (place === null) return document.getElementById('content').focus({ preventScroll: true });
  const { control, around } = place;
  // The control was only moved.
  if (control.isConnected) return control.focus({ preventScroll: true });
  for (const [element, before] of around) {
    if (!element.isConnected) continue;
    const controls = [...element.querySelectorAll(CONTROLS)].filter(isShown);
    if (controls.length > 0) return controls[Math.min(before, controls.length - 1)].focus();
  }
  return document.getElementById('content').focus({ preventScroll: true });
}

const isShown = (control) => control.checkVisibility?.() ?? true;
