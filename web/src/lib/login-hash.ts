/**
 * Takes the token out of an address such as `http://host/#ticket=…` (the one that `ferret serve` prints, good once) or
 * `#token=…`, and removes it from the address bar and the tab's history, so that it is neither bookmarked nor shared.
 * The browser's history keeps it, so a ticket works only once. Null without a ticket.
 */
export function takeToken(location: Location, history: History): string | null {
  const given = new URLSearchParams(location.hash.slice(1))
  const token = given.get('ticket') ?? given.get('token')
  if (token === null) return null
  history.replaceState(history.state, '', location.pathname + location.search)
  return token.trim()
}

/** True if an address with this hash signs in. */
export const signsIn = (hash: string): boolean => /^#(ticket|token)=/.test(hash)
