// The address of a secret on the page, and when its expiry counts as near.

/** How long before its expiry a secret is marked. Milliseconds. */
export const EXPIRY_WARNING_MS = 7 * 86_400_000;

/** Names are unique within a namespace. */
export const addressOf = ({ name, namespace }) =>
  `secrets/${encodeURIComponent(name)}?namespace=${encodeURIComponent(namespace)}`;
