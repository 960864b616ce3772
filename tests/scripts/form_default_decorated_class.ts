const named = (value: any, { name }: any) => { console.log(name, value.name) }
export default @named class { static { console.log(this.name) } }
