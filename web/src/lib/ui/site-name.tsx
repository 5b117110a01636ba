/** What people call a participant, whichever way its script is written, and its id where that is another. */
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
