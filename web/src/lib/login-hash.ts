/**
 * Takes the token out of an address such as `http://host/#token=…` (the one that `ferret serve` prints) and removes
 * it from the address bar and the history, so that it is neither bookmarked nor shared. Null when there is none.
 */
export function takeToken(location: Location, history: History): string | null {
  const token = new URLSearchParams(location.hash.slice(1)).get('token')
  if (token === null) return null
  history.replaceState(history.state, '', location.pathname + location.search)
  return token.trim()
}
