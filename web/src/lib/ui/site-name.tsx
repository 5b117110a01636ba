/** A participant's display name in its own writing direction, and its id if that differs. */
export function SiteName({ name, id }: { name: string; id: string }) {
  return (
    <>
      <bdi dir="auto" className="site-name">
        {name}
      </bdi>
      {id !== name && <code className="muted small site-id">{id}</code>}
    </>
  )
}
