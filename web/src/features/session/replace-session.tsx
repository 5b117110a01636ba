import './sign-in.css'

import type { CurrentUser } from '@/api/types'

interface Props {
  /** The user of the browser's session. */
  me: Pick<CurrentUser, 'name'>
  /** Called with true to use the link. */
  onChosen: (use: boolean) => void
}

/** A confirmation before a sign-in link replaces a session, because anybody can send a link into their own account. */
export function ReplaceSession({ me, onChosen }: Props) {
  return (
    <main className="sign-in">
      <form
        data-testid="replace-session"
        onSubmit={(event) => {
          event.preventDefault()
          onChosen(false)
        }}
      >
        <h1>You are signed in as {me.name}</h1>
        <p>
          The address that you opened is a sign-in link, perhaps for another account. Use it only if you requested it
          yourself: you would work in that account, and {me.name} would be signed out here.
        </p>
        <button type="submit" className="button primary" autoFocus>
          Stay signed in as {me.name}
        </button>
        <button
          type="button"
          className="button"
          onClick={() => {
            onChosen(true)
          }}
        >
          Use the link
        </button>
      </form>
    </main>
  )
}

interface Steps {
  /** The user of the browser's session; undefined without a session. */
  signedIn: () => Promise<CurrentUser | undefined>
  /** Resolves to true if the user wants the link to replace that session. */
  ask: (me: CurrentUser) => Promise<boolean>
  signIn: () => Promise<unknown>
}

/** Signs in with a link. If the browser has a session, the user has to agree first. */
export async function followLink({ signedIn, ask, signIn }: Steps): Promise<void> {
  const me = await signedIn()
  if (me === undefined || (await ask(me))) await signIn()
}
