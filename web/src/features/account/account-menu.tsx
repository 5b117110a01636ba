import './account.css'

import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useId, useRef } from 'react'

import { meQuery, signOut } from '@/api/account'
import { toProblem } from '@/api/problem'
import { dismissToasts, toastFailure } from '@/lib/ui/toasts'

/** The signed-in user, with a link to the account and a button to sign out. */
export function AccountMenu() {
  const { data: me } = useQuery(meQuery)
  const queryClient = useQueryClient()
  const menu = useRef<HTMLDivElement>(null)
  const id = useId()
  const leave = async () => {
    try {
      await signOut()
    } catch (failure) {
      toastFailure('Signing out', toProblem(failure))
      return
    }
    // The next user of this tab sees nothing of this one: no kept draft, and no failed action.
    window.sessionStorage.clear()
    dismissToasts()
    await queryClient.resetQueries()
  }

  if (me === undefined) return null
  return (
    <div className="account-menu">
      <button type="button" className="button quiet" popoverTarget={id} data-testid="account-menu">
        {me.name} <span className="role">{me.role}</span>
      </button>
      <div ref={menu} id={id} popover="auto">
        <Link to="/account" onClick={() => menu.current?.hidePopover()}>
          Your account
        </Link>
        <button type="button" onClick={() => void leave()}>
          Sign out
        </button>
      </div>
    </div>
  )
}
