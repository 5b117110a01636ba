import './sign-in.css'

import type { CurrentUser } from '@/api/types'

interface Props {
  /** The user whose session the browser has. */
  me: Pick<CurrentUser, 'name'>
  /** Whether the link is to be used. */
  onChosen: (use: boolean) => void
}

/** Asks before a sign-in link takes the place of a session: anybody can send somebody a link into the own account. */
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
          The address that you opened has a sign-in link, perhaps into another account. Use it only if you asked for it
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
